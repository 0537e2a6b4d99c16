const int<0> x = 0;

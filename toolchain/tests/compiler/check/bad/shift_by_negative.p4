const bit<8> x = 8w1 << -1;

const int a = 7;
const int b = -7 / a;
const int c = a % -2;

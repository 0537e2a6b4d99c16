#define WIDTH(n) bit<(n * 8)>
const WIDTH(2) x = undeclared;

@tuned[{1, 2}]
const bit<8> k = 1;

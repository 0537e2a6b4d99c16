@tuned[1]
@tuned[2]
const bit<8> k = 1;

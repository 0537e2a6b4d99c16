@annotated(1
const bit<8> x = 1;

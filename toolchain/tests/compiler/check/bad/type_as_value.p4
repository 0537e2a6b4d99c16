typedef bit<8> byte;
const bit<8> x = byte;

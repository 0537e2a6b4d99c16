const bit<8> SPARE = 1;

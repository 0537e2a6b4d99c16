const bit<8> x = 0xZZ;

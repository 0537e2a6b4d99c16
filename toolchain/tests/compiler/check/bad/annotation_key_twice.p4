@meta[a = 1, a = 2] const bit<8> x = 1;

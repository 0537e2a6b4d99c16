const bit<4096> x = 0;

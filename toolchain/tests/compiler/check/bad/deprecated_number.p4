@deprecated(1) const bit<8> k = 1;

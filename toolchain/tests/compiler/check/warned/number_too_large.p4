@noWarn("unused") const bit<8> k = 300;

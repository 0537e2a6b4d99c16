const tuple<bit<8>> x = { 1, 2 };

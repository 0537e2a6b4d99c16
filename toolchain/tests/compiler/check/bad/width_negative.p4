const bit<(3 - 5)> x = 0;

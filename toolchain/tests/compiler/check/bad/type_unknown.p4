const byte x = 1;

const bool x = -true;

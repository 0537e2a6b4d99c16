struct s {
    bit<8>[4] fine;
    string[2] names;
}

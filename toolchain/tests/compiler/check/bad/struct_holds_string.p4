struct s {
    string name;
    list<bit<8>> sizes;
}

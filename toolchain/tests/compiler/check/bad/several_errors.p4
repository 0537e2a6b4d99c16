const bit<8> a = ;
struct s { bit<8> ; bit<4> b; }
control c() {
    apply {
        1 = 2;
        x = ;
    }
}

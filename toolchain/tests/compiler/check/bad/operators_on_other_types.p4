struct s_t { bit<8> a; }
header h_t { bit<8> a; }
header_union u_t { h_t one; }
enum bit<8> e_t { one = 1 }
enum plain_t { a, b }
extern E { E(); }
control c(inout bit<8> x, inout s_t s, inout bool b, inout u_t u, inout u_t v, inout bit<2048> w) {
    E() e;
    apply {
        x = x << b;
        x = x >> 9;
        w = (x ++ (w ++ w))[2047:0];
        b = u == v;
        b = e == e;
        x = 7 |+| 9;
        x = x ? 8w1 : 2;
        e = b ? e : e;
        x = (bit<8>)(e_t)8w7;
        x = x[3:-1];
        x = (bit<8>)x[b +: 2];
        x = (bit<8>)x[8s1 +: 2];
        x = (bit<8>)x[7 +: 2];
        x += 16w1;
        x += 8s1;
    }
}

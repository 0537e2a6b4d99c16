struct box<T> { T content; }
typedef box<bit<8>> small;
typedef box<small> nested;

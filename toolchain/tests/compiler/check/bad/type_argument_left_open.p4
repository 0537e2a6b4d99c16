struct pair<T> { T first; T second; }
const pair<_> both = { 8w1, 8w2 };

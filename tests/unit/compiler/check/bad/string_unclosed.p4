const string s = "abc;

/* a comment
   of two lines */ const bit<8> x = /* here */ y;

####### a banner ######
#defne WIDTH 8
const bool SMALL = true;
const bool BIG = !SMALL;
@noWarn("unused")
action a(out bool x) { x = BIG; }

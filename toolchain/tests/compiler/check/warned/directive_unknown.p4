####### a banner ######
#defne WIDTH 8
const bool SMALL = true;
const bool BIG = !SMALL;
@noWarn("unused")
action a(out bool x) {
    # no comment in P4, but left out as by others
    x = BIG;
}

#include <core.p4>
extern T make<T>();
control c() {
    apply {
        make();
        bool x = make() == make();
    }
}

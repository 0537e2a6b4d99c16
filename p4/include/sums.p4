// The values of each cell: sums of chunks, their common exponent, and the smallest and the largest shape of an opening.
#ifndef SUMS_P4
#define SUMS_P4

control Sums(inout headers_t hdr, inout metadata_t meta) {
    register<bit<8>>(CELLS)  exponents;
    register<shape_t>(CELLS) smallest_shapes;
    register<shape_t>(CELLS) largest_shapes;
    EACH_WORD(SUM_REGISTER)

    action put_exponent() {
        exponents.write(meta.cell, hdr.aggregation.exponent);
    }

    action raise_exponent() {
        bit<8> largest;
        exponents.read(largest, meta.cell);
        hdr.aggregation.exponent = largest > hdr.aggregation.exponent
                                   ? largest : hdr.aggregation.exponent;
        exponents.write(meta.cell, hdr.aggregation.exponent);
    }

    action get_exponent() {
        exponents.read(hdr.aggregation.exponent, meta.cell);
    }

    action put_shapes() {
        smallest_shapes.write(meta.cell, hdr.opening.smallest);
        largest_shapes.write(meta.cell, hdr.opening.largest);
    }

    action widen_shapes() {
        shape_t smallest;
        shape_t largest;
        smallest_shapes.read(smallest, meta.cell);
        largest_shapes.read(largest, meta.cell);
        hdr.opening.smallest = smallest < hdr.opening.smallest ? smallest : hdr.opening.smallest;
        hdr.opening.largest = largest > hdr.opening.largest ? largest : hdr.opening.largest;
        smallest_shapes.write(meta.cell, hdr.opening.smallest);
        largest_shapes.write(meta.cell, hdr.opening.largest);
    }

    action get_shapes() {
        smallest_shapes.read(hdr.opening.smallest, meta.cell);
        largest_shapes.read(hdr.opening.largest, meta.cell);
    }

    action put_values() {
        EACH_WORD(PUT)
    }

    action add_values() {
        EACH_WORD(ADD)
    }

    action get_values() {
        EACH_WORD(GET)
    }

    apply {
        if (meta.counted && meta.before == 0) {
            put_exponent();
            if (hdr.opening.isValid()) {
                put_shapes();
            } else if (hdr.values.isValid()) {
                put_values();
            }
        } else if (meta.counted) {
            raise_exponent();
            if (hdr.opening.isValid()) {
                widen_shapes();
            } else if (hdr.values.isValid()) {
                add_values();
            }
        } else if (meta.answered) {
            get_exponent();
            if (hdr.opening.isValid()) {
                get_shapes();
            } else if (hdr.values.isValid()) {
                get_values();
            }
        }
    }
}

#endif

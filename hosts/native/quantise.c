/* Whole arrays of chunks: what hosts/quantise.py calls. The last chunk may be short. */
#include "quantise.h"

static uint64_t chunk_length(uint64_t first, uint64_t elements, uint32_t lanes)
{
	return elements - first < lanes ? elements - first : lanes;
}

void quantise_exponents(const float *values, uint64_t elements, uint32_t lanes, uint8_t *exponents)
{
	for (uint64_t first = 0; first < elements; first += lanes)
		*exponents++ = largest_exponent(values + first, chunk_length(first, elements, lanes));
}

void quantise_array(const float *values, uint64_t elements, uint32_t lanes, const uint8_t *exponents,
		    uint32_t value_bits, uint32_t *out, int to_wire)
{
	for (uint64_t first = 0; first < elements; first += lanes)
		quantise(values + first, chunk_length(first, elements, lanes), *exponents++, value_bits, out + first,
			 to_wire);
}

void dequantise_array(const uint32_t *sums, uint64_t elements, uint32_t lanes, const uint8_t *exponents,
		      uint32_t value_bits, float *out, int from_wire)
{
	for (uint64_t first = 0; first < elements; first += lanes)
		dequantise(sums + first, chunk_length(first, elements, lanes), *exponents++, value_bits, out + first,
			   from_wire);
}

"""Numbers with known properties: floats by their bits, quotients that round alike, comparisons."""

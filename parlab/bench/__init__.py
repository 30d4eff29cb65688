"""The benchmark: one decoder, trained for real on any (pp, cp, tp) mesh, measured and recorded."""

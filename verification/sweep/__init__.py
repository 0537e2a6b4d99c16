"""`verification sweep`: runs every system many times in virtual time, on links that lose packets.
Nothing may be reported, because nothing but the losses is wrong."""

"""Who is let in, with how many connections and for how long."""

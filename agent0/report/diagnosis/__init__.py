"""Why a run went badly, from its tables: evidence is gathered, a cause is found, and both are put into words."""

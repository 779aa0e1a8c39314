"""Why a run went badly, from its tables: counts are gathered, a cause is found, and both are put into words."""

"""The bus on a real server: every cause gets its effects once, whatever is delivered twice, away, paused or killed."""

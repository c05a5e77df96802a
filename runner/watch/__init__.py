"""Watching over time: nights and their alerts, series in the history, imported figures, the site, schedules."""

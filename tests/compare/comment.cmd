long.yaml long_a40.yaml --gpu a40 --format markdown --rules ../fit/need.rules

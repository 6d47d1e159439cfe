long.yaml long_a40.yaml --gpu a40 --verbose --width 120 --rules ../fit/need.rules

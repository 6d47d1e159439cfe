long_a40.yaml own.yaml --gpu a40 --width 100 --ascii --rules ../fit/need.rules

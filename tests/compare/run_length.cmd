short.yaml long.yaml --width 80 --rules ../fit/need.rules

short.yaml short.yaml --gpu a40 --rules ../fit/need.rules

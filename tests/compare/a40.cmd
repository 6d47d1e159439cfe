long.yaml long_a40.yaml --gpu a40 --gpu h100-sxm --rules ../fit/need.rules

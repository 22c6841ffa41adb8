export const words = { name: 'imagegen', isNamed: 'It comes with `--type image` by itself.' }

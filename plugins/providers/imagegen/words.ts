export const words = { name: 'imagegen', isNamed: '`--type image` selects it automatically.' }

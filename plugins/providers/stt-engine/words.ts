export const words = { name: 'stt-engine', isNamed: true }

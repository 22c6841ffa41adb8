export const words = { name: 'tts-cpu', isNamed: true }

export const words = { name: 'tts-gpu', isNamed: false }

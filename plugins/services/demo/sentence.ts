/** What the demo model says, word for word. No word may stand in it twice. */
export const demoSentence = 'Hello! I am the demo model of svc, speaking through a real inference engine on your own machine. ' +
  'My one trick is this sentence, word for word, every time. To see what runs here, type: `npx svc slot list`'

/**
 * What the demo model says, word for word. No word may stand in it twice.
 * @param command how users call the command line
 */
export function sentenceFor (command: string): string {
  return 'Hello! I am the demo model of svc, speaking through a real inference engine on your own machine. ' +
    `My one trick is this sentence, word for word, every time. To see what runs here, type: \`${command} slot list\``
}

/** As a checkout says it. */
export const demoSentence = sentenceFor('npx svc')

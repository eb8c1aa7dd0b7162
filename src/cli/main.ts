#!/usr/bin/env node
// The command line: one file per verb, registered here. Parsing mistakes end like every other: one sentence, code 2.
import { createRequire } from 'node:module';
import { Command, CommanderError } from 'commander';
import { badUsage } from '../errors.ts';
import { registerData } from './data.ts';
import { registerDemo } from './demo.ts';
import { registerEvaluate } from './evaluate.ts';
import { registerExplain } from './explain.ts';
import { registerImpute } from './impute.ts';
import { registerLabels } from './labels.ts';
import { registerPredict } from './predict.ts';
import { fail } from './run.ts';
import { registerSenses } from './senses.ts';
import { registerServe } from './serve.ts';
import { registerTrain } from './train.ts';
import { registerTune } from './tune.ts';

const { version } = createRequire(import.meta.url)('../../package.json') as { version: string };

const program = new Command('umbel')
  .description('Extreme multi-label classification: text in, the right labels out of thousands or millions.')
  .version(version)
  .showSuggestionAfterError()
  .showHelpAfterError('(umbel --help lists the verbs, umbel VERB --help explains one)')
  .exitOverride();

registerDemo(program);
registerData(program);
registerImpute(program);
registerTrain(program);
registerTune(program);
registerPredict(program);
registerExplain(program);
registerSenses(program);
registerEvaluate(program);
registerLabels(program);
registerServe(program);

// A closed pipe (`umbel ... | head`) is not an error.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE') process.exit(0);
  throw error;
});

try {
  await program.parseAsync();
} catch (error) {
  // The flags were not understood, so that only the words themselves tell whether JSON is wanted.
  const json = process.argv.includes('--json');
  if (!(error instanceof CommanderError)) fail(error, json);
  // Commander has printed its own message by now; help and version end with code 0.
  else if (error.exitCode !== 0) {
    const rule = error.code === 'commander.help' ? 'a verb must be given' : error.message;
    const sentence = rule.replace(/^error: /, '').replaceAll('\n', ' ');
    if (json) process.stdout.write(`${JSON.stringify(badUsage(sentence))}\n`);
    process.exitCode = 2;
  }
}

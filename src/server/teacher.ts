// The thread that teaches a saved model one more label and saves it in its place; those that serve it load it then.
import { workerData } from 'node:worker_threads';
import type { Label } from '../data/vocabulary.ts';
import { loadModel, saveModel } from '../store/folder.ts';
import { reply } from './thread.ts';

export interface Lesson {
  folder: string;
  label: Label & { examples?: string[] };
}

async function teach({ folder, label }: Lesson): Promise<void> {
  await saveModel(await (await loadModel(folder)).withLabels([label]), folder);
}

const lesson = workerData as Lesson;
reply(teach(lesson), { [lesson.folder]: 'model' });

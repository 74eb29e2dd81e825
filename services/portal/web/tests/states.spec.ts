import { FIRST } from './looks';
import { testStates } from './states';

testStates(FIRST);
